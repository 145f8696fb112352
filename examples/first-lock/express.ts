import express, { type Request } from 'express';
import { lockOn, sendProblem, traceContext } from 'reenlock/express';
import { takeUnit } from './stock.ts';

const app = express();
const guard = lockOn((req: Request<{ id: string }>) => `order:${req.params.id}`);

app.use(traceContext()); // each request is one owner
app.post('/orders/:id/units', guard, async (req, res) => {
  res.json({ units: await takeUnit(req.params.id) });
});
app.use(sendProblem); // 423 with Retry-After when the lock is busy

const port = Number(process.env.PORT ?? 3000);
app.listen(port, () => console.log(`Listening on http://127.0.0.1:${port}`));
