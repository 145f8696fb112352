import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';

/** Numbers by name. A read and the write after it are two steps, and anything may happen in between. */
export interface Database {
  read(name: string): Promise<number | undefined>;
  write(name: string, value: number): Promise<void>;
  names(): Promise<string[]>;
}

/** In this process, and about as slow as a database nearby. */
export class MemoryDatabase implements Database {
  readonly #values = new Map<string, number>();

  async read(name: string): Promise<number | undefined> {
    await sleep(1);
    return this.#values.get(name);
  }

  async write(name: string, value: number): Promise<void> {
    await sleep(1);
    this.#values.set(name, value);
  }

  async names(): Promise<string[]> {
    return [...this.#values.keys()];
  }
}

/** In one Redis hash, for any number of processes. */
export class RedisDatabase implements Database {
  readonly #client: Redis;
  readonly #hash: string;

  constructor(client: Redis, hash = 'orders') {
    this.#client = client;
    this.#hash = hash;
  }

  async read(name: string): Promise<number | undefined> {
    const value = await this.#client.hget(this.#hash, name);
    return value === null ? undefined : Number(value);
  }

  async write(name: string, value: number): Promise<void> {
    await this.#client.hset(this.#hash, name, value);
  }

  names(): Promise<string[]> {
    return this.#client.hkeys(this.#hash);
  }
}
