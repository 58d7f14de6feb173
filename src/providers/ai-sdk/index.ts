export { type SdkWorkers, createSdkWorkers } from './workers.ts';
