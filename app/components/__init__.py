"""Rows in, widgets out: the parts that pages are put together from."""
