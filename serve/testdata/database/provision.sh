#!/bin/sh
# The size is the only number in the spec.
size=$(sed -n 's/.*"spec":{[^}]*"size":\([0-9]*\).*/\1/p')
if [ "$size" = 0 ]; then
  echo '{"permanent": "the size is 0"}'
  exit
fi
echo "provisioning $GOPF_NAMESPACE/$GOPF_NAME" >&2
echo '{"status": {"phase": "Ready"}, "events": [{"reason": "Provisioned", "message": "done"}]}'
