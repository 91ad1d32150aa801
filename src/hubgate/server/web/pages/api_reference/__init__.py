"""The OpenAPI document and the pages that show it: an index, and a page for each subject.

operations  reads operations and shapes of JSON objects from the document
examples    an example request and response for each operation
subjects    assigns each operation to a subject, by its path
routes      the pages
"""
