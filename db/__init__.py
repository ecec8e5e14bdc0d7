"""What EveryTurn remembers: conversations, scores, runs and their metrics, in one SQL database.

Only this package imports SQLAlchemy. It imports neither `app` nor `trainer`; what leaves it are
the frozen records of `db.records`.
"""
