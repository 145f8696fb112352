/**
 * For a client whose server goes away: how long ioredis waits for the end of a connection before it destroys it. It waits
 * for that of one that has ended already, too, and its default of 2 s would be what most of such a test takes.
 */
export const disconnectTimeout = 50;
