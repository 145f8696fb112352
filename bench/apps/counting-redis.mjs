import { Redis } from 'ioredis';

/** An ioredis client that counts the commands it was given to send. */
export class CountingRedis extends Redis {
  sent = 0;

  sendCommand(command, stream) {
    this.sent += 1;
    return super.sendCommand(command, stream);
  }
}
