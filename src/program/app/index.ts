export { type App, createApp } from './app.ts';
export type { AppOptions } from './foundation.ts';
export { openBooks } from './payments.ts';
export type { ReloadReport } from './foundation.ts';
