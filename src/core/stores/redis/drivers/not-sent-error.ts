/** What a driver rejects with if it knows that it has not given a command to a connection, and never will. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}
