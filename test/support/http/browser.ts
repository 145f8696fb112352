import { type Browser, chromium } from 'playwright-core';
import { aptInstall } from '../processes/apt.ts';
import { isExecutable, onPath } from '../processes/executable.ts';

const missing =
  'The tests of the board need a real browser, and none was found. Any one of these helps: ' +
  '(1) put chromium, chromium-browser or google-chrome on the PATH; ' +
  '(2) set CHROMIUM to the path of the binary; ' +
  '(3) run the tests as root on a Debian-like system, where they install it with apt-get.';

/** How long it may take to install a browser on a fresh machine. */
export const installMs = 600_000;

const args = [
  // As root there is no sandbox; the pages are the tests' own.
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts a browser: `CHROMIUM`, else from the PATH, else installed with apt-get. Throws if there is no way to get one. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumBinary(), args });
}

function chromiumBinary(): string {
  const named = process.env.CHROMIUM;
  if (named) {
    if (!isExecutable(named)) throw new Error(`CHROMIUM is '${named}', which is not an executable file. ${missing}`);
    return named;
  }
  const binary =
    ['chromium', 'chromium-browser', 'google-chrome'].map((name) => onPath(name)).find(Boolean) ?? install();
  if (!binary) throw new Error(missing);
  return binary;
}

function install(): string | undefined {
  aptInstall('chromium', missing);
  return onPath('chromium');
}
