export { createCardOrigin } from './cards/card-pages.ts';
export type { SignBytes } from './cards/sign-card.ts';
export { type A2a, createA2a } from './create-a2a.ts';
export { createPush, type PushNotifications } from './push/create-push.ts';
