"""The torch worker's modules; worker.py is the program."""

VERSION = "0.1.0"
