export { createSdkWorkers } from './workers.ts';
