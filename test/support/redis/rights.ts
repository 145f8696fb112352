/** What a user needs beside the rights of the documents, by its server's `INFO server`: from 7.2 on, clients say what they are. */
export function clientInfoRight(info: string): readonly string[] {
  const [, major, minor] = /^redis_version:(\d+)\.(\d+)/m.exec(info) ?? [];
  return Number(major) + Number(minor) / 100 >= 7.02 ? ['+client|setinfo'] : [];
}
