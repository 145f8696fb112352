-- Refuses a record that another format of the package wrote. This format's records begin with a digit; those of a later one
-- must not. Needs `text`, the record or false.
if text and string.byte(text) > DIGIT_NINE then return redis.error_reply('RLFORMAT the record is of another format') end
