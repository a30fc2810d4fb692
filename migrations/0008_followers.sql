-- What a reactor waits for without an operator: a broker that is unavailable, for example.
alter table reactor.checkpoint add column waits text;
