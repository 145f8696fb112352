// What the README's fragments take for granted. Exported, so that a fragment need not use all of it.
import type { Server } from 'node:http';
import type { Express } from 'express';
import type { Redis } from 'ioredis';
import type { Locks } from 'reenlock';
import type { Guard } from 'reenlock/express';

export declare const app: Express;
export declare const client: Redis;
export declare const guard: Guard;
export declare const locks: Locks;
export declare const server: Server;
export declare const claim: string;
export declare const update: string;
export declare const db: {
  query(sql: string, values: readonly unknown[]): Promise<{ rowCount: number | null; rows: { units: number }[] }>;
};
export declare function sendMails(id: string): Promise<void>;
export declare function ship(id: string, fence: number): Promise<void>;
export declare function takeOne(): Promise<void>;
