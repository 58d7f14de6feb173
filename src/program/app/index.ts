export { type App, createApp } from './app.ts';
export type { AppOptions, ReloadReport } from './foundation.ts';
export { openBooks } from './payments.ts';
