"""Uploads and downloads of files, without loading whole files into memory."""
