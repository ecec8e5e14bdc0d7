"""Runs that another machine computes, over the Tinker / MinT API."""
