import { watchLeaks } from '../processes/leaks.ts';

watchLeaks();
