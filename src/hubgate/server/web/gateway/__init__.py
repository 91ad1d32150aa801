"""The gateway's routes: requests for inference and jobs, checked here and forwarded to the operator's services."""
