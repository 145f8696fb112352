import express, { type Express } from 'express';
import { type Locks, lock, resumeHold } from 'reenlock';
import { sendProblem, traceContext } from 'reenlock/express';
import type { Database } from '../orders/database.ts';

const prefix = 'seat:';

/** A seat is reserved by one request and paid by a later one, which may reach another process. */
export function createApp(database: Database, locks: Locks, reservedMs: number): Express {
  const app = express();
  app.use(express.json());
  app.use(traceContext({ locks }));

  // The hold outlives this request. If nobody pays in time, its lease ends, and the seat is free again.
  app.post('/seats/:id/reservations', async (req, res) => {
    const hold = await lock.tryAcquire(prefix + req.params.id);
    const isTaken = hold === null || (await database.read(req.params.id)) !== undefined;
    if (isTaken) res.status(409).json({ error: 'The seat is taken' });
    else res.status(201).json({ token: await hold.detach({ leaseMs: reservedMs }), reservedMs });
  });

  // Who has the token has the seat. A token that is over, used or forged is answered 410. The fence is kept with the seat.
  app.post('/payments', async (req, res) => {
    const hold = await resumeHold(req.body.token);
    const seat = hold.key.slice(prefix.length);
    await database.write(seat, hold.fence);
    res.status(201).json({ seat });
  });

  app.delete('/reservations', async (req, res) => {
    const hold = await resumeHold(req.body.token);
    await hold.release();
    res.sendStatus(204);
  });

  app.use(sendProblem);
  return app;
}
