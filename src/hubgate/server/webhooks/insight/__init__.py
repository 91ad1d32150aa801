"""Deliveries of the whole hub, for the operator: backlog, rate, the oldest waiting delivery and failing hosts.

Only reads. The operator's page, the metrics and `hubgate doctor` use it; `delivering/` counts its attempts with
`throughput.py`.
"""
