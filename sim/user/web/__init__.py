"""Web pages: users, a load balancer, a service and the servers that it asks."""
