// Puts the files of the board's page beside its compiled modules, in `dist` or in the folder that is named: they are served as
// they are.

import { cpSync } from 'node:fs';
import { join } from 'node:path';

const page = 'core/http/board/page';
const root = join(import.meta.dirname, '..');
const dist = process.argv[2] ?? join(root, 'dist');
cpSync(join(root, 'src', page), join(dist, page), { recursive: true });
