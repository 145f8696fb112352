import { loadPeer } from '../core/model/peer.ts';

// Before any file that imports them: a failed import would not say what to install.
loadPeer('@nestjs/common', 'reenlock/nest', () => require('@nestjs/common'));
loadPeer('rxjs', 'reenlock/nest', () => require('rxjs'));
