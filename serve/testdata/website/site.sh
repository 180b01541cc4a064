#!/bin/bash
web='"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "'$GOPF_NAME'"}'
spec='"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}'
[ "$GOPF_REASON" = delete ] && echo "{\"delete\": [{$web}]}" && exit
echo "{\"apply\": [{$web, \"spec\": {$spec}}], \"status\": {\"phase\": \"Deployed\"}}"
