"""What people see: pages, their templates and styles; and the small routes that belong to no subject.

Pages parse, call a use case and render; they hold no rules. Every flow works without JavaScript.
"""
