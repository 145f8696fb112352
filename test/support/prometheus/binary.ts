import { programOf } from '../processes/executable.ts';

const missing =
  'The tests run the alert rules with promtool, and it was not found. Any one of these helps: ' +
  '(1) put promtool on the PATH; it comes with Prometheus; ' +
  '(2) run the tests as root on a Debian-like system, where they install it with apt-get.';

/** The path of promtool: from the PATH, else installed with apt-get. */
export function promtoolBinary(): string {
  return programOf('prometheus', 'promtool', missing);
}
