import express from 'express';

const pauseMs = 100;

/**
 * An application with one route, behind `context` and `guard`. Where there is a counting client, `counts()` tells how
 * many commands it had sent when the handlers began and in all, and POST /paused/:id answers while Redis is paused.
 */
export function ordersApp({ context, guard, client }) {
  const app = express();
  const answer = (req, res) => res.json({ id: req.params.id });
  if (!client) {
    app.use(context);
    app.post('/orders/:id', ...before(guard), answer);
    return { app };
  }

  const counts = { requests: 0, commandsBefore: 0 };
  const sentAtStart = new WeakMap();
  app.use((req, _res, next) => {
    sentAtStart.set(req, client.sent);
    next();
  });
  app.use(context);
  app.post('/orders/:id', ...before(guard), (req, res) => {
    counts.requests += 1;
    counts.commandsBefore += client.sent - sentAtStart.get(req);
    answer(req, res);
  });
  app.post('/paused/:id', ...before(guard), async (req, res) => {
    await client.client('PAUSE', pauseMs);
    answer(req, res);
  });
  return { app, counts: () => ({ ...counts, commands: client.sent }) };
}

function before(guard) {
  return guard ? [guard] : [];
}
