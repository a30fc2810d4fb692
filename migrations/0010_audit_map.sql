-- The nodes of the map of accounts (eventstore/tlog.Map) in the newest signed checkpoint: package projections/auditproj. The signer
-- creates them again if they do not lead to that checkpoint's root.

create table audit.map_node (
  path bytea primary key, -- the node's depth in 2 bytes, then as many bits
  key  bytea,             -- key of a leaf; null: a node with two subtrees
  hash bytea not null     -- hash of a node, or value of a leaf
) with (fillfactor = 80);
