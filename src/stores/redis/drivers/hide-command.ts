/**
 * Hides the command that ioredis attaches to its errors from logs: its arguments may be the password of a refused login, or the
 * owner and the channel of a process. The property stays readable, but no log prints it.
 */
export function hideCommand<E>(error: E): E {
  const { command, lastNodeError } = Object(error) as { command?: unknown; lastNodeError?: unknown };
  if (command !== undefined) Reflect.defineProperty(Object(error), 'command', { enumerable: false });
  // Why a cluster could not be connected to.
  if (lastNodeError !== undefined) hideCommand(lastNodeError);
  return error;
}
