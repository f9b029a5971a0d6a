"""Logs in object stores and other places that are no file system of this machine: listed, mirrored, fetched.

What lies below an address becomes a tree of sparse files with names, sizes and times of the objects, of which only the
first bytes are there; so that finding, grouping and reading need to know nothing of where logs come from. A share of
logs is fetched whole while it is read, by whichever process or machine reads it.
"""
