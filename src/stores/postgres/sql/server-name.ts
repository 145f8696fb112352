/**
 * The name of the server, as an SQL expression: the microsecond in which it started, as a number, since the settings of a session
 * change the text of a time. Any role may ask for it.
 */
export const serverName = '(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text';
