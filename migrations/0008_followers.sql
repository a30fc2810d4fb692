-- For what a reactor waits that goes on by itself: a broker that is away.
alter table reactor.checkpoint add column waits text;
