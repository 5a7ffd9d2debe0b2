"""ec2-volumes: the case and its programs."""
