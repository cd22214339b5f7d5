-- The relay's role in compose.yaml. "relay migrate --grant-to relay" gives it its rights.
create role relay login password 'relay';
