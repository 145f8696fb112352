import { join } from 'node:path';
import { runScript } from '../../support/processes/processes.ts';

const play = (scene: string) => runScript(join(__dirname, 'alive-script.ts'), { args: [scene] });

describe('A process in which nothing else happens', () => {
  it.each([
    ['a wait with an end', 'ERR_LOCK_TIMEOUT\n'],
    ['a wait without an end', 'granted\n'],
    ['the end of the locks', 'closed\n'],
  ])('A process stays alive for %s', async (scene, stdout) => {
    expect(await play(scene)).toEqual({ code: 0, stdout, stderr: '' });
  });

  it('A process does not stay alive for a hold that is renewed', async () => {
    expect(await play('a hold that is renewed')).toEqual({ code: 0, stdout: 'held\n', stderr: '' });
  });
});
