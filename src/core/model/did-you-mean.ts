/** Options by the names that they have in other libraries, and the option that is meant. */
const otherNames: Readonly<Record<string, string>> = {
  ttl: 'leaseMs',
  lease: 'leaseMs',
  leaseTime: 'leaseMs',
  duration: 'leaseMs',
  expire: 'leaseMs',
  expires: 'leaseMs',
  timeout: 'waitMs',
  wait: 'waitMs',
  waitTime: 'waitMs',
  acquireTimeout: 'waitMs',
  retryCount: 'waitMs',
  retryDelay: 'waitMs',
  retryJitter: 'waitMs',
  automaticExtensionThreshold: 'renew',
  namespace: 'category',
  owner: 'reentrant',
};

/** Options of a store that `createLocks` was given, and what is meant. */
const ofStores: Readonly<Record<string, string>> = {
  client: 'createLocks({ store: new RedisStore({ client }) })',
  redis: 'createLocks({ store: new RedisStore({ client }) })',
  prefix: "createLocks({ store: new RedisStore({ client, prefix: '…' }) })",
  pool: 'createLocks({ store: new PostgresStore({ pool }) })',
  adapter: 'createLocks({ store: new CasStore({ adapter }) })',
  stores: 'createLocks({ store: new QuorumStore({ stores }) })',
};

/** The end of a message about an option that there is not: what is probably meant, or nothing. */
export function otherName(name: string, rules: object, where: string): string {
  const meant = Object.hasOwn(otherNames, name) ? otherNames[name] : undefined;
  if (meant !== undefined && Object.hasOwn(rules, meant)) return `. Did you mean \`${meant}\`?`;
  if (where !== 'createLocks' || !Object.hasOwn(ofStores, name)) return '';
  return `. Did you mean \`${ofStores[name]}\`?`;
}

/** Options whose value alone is mistaken for the options. */
const durations = ['waitMs', 'leaseMs', 'drainMs', 'timeoutMs'];

/** The end of a message about options that are the value of one option: a client instead of `{ client }`, or `5_000`. */
export function valueOfOption(
  options: unknown,
  rules: Readonly<Record<string, { accepts(value: unknown): boolean }>>,
  where: string,
  needed: readonly string[],
): string {
  if (typeof options === 'number') {
    const meant = durations.filter((option) => rules[option]?.accepts(options));
    return meant.length === 0
      ? ''
      : `. Did you mean ${meant.map((option) => `\`{ ${option}: ${options} }\``).join(' or ')}?`;
  }
  const name = [...needed, 'store'].find((option) => rules[option]?.accepts(options));
  if (name === undefined) return '';
  return `. Did you mean \`${/^[A-Z]/.test(where) ? 'new ' : ''}${where}({ ${name} })\`?`;
}
