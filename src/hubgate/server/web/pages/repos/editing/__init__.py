"""Pages that change the files of a repo: add, edit, rename, upload and delete. Each change is a commit to the branch or
pull request that the page shows, or a new pull request.
"""
