-- A source that has most of a bot's words updates all rows of a page at once: half of the page is free for their new versions, so that the indexes do not change.
alter table knowledge.term set (fillfactor = 45);
