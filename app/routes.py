"""Where each page lives: the one list that the router, links and redirects share."""

HOME = "views/home.py"
CONVERSATIONS = "views/conversations.py"
LABEL = "views/label.py"
LAUNCH = "views/launch.py"
RUNS = "views/runs.py"
RUN = "views/run.py"
SETTINGS = "views/settings.py"

CONVERSATION_PARAM = "conversation"
RUN_PARAM = "run"
FROM_RUN_PARAM = "from_run"
