/**
 * What the contract needs of a test runner. The functions of jest and vitest fit; those of `node:test` do with `expect` from
 * the package of that name.
 */
export interface TestRunner {
  describe(title: string, body: () => void): unknown;
  it(title: string, body: () => Promise<void>): unknown;
  beforeEach(body: () => Promise<void>): unknown;
  afterEach(body: () => Promise<void>): unknown;
  readonly expect: Expect;
}

/** The assertions that the contract makes. */
export interface Expect {
  (actual: unknown): Matchers;
  any(type: unknown): unknown;
  closeTo(value: number, digits?: number): unknown;
  objectContaining(part: Record<string, unknown>): unknown;
}

/** What the contract asserts of a value. */
export interface Matchers {
  readonly not: { toMatch(pattern: RegExp): unknown };
  toBe(expected: unknown): unknown;
  toBeGreaterThan(than: number): unknown;
  toBeGreaterThanOrEqual(than: number): unknown;
  toBeInstanceOf(type: unknown): unknown;
  toBeLessThan(than: number): unknown;
  toBeLessThanOrEqual(than: number): unknown;
  toBeUndefined(): unknown;
  toContain(item: unknown): unknown;
  toContainEqual(item: unknown): unknown;
  toEqual(expected: unknown): unknown;
  toHaveLength(length: number): unknown;
  toMatchObject(part: object): unknown;
}
