-- The nodes of the map of accounts (eventstore/tlog.Map) as the newest signed checkpoint has it: package projections/auditproj. The signer
-- makes them again if they do not lead to that checkpoint's root.

create table audit.map_node (
  path bytea primary key, -- the node's depth in 2 bytes, and as many bits
  key  bytea,             -- of a leaf; null: it is a node with two subtrees
  hash bytea not null     -- of a node; of a leaf the value
) with (fillfactor = 80);
