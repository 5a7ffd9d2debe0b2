"""What people see of a study: tables, plots."""
