export { createA2a, type A2a, type A2aOptions } from './create-a2a.ts';
export { createCardOrigin } from './cards/card-origin.ts';
export { createPush, type PushNotifications } from './push/create-push.ts';
export type { Push } from './push-door.ts';
export type { SignBytes } from './cards/sign-card.ts';
