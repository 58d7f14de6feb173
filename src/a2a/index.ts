export { createCardOrigin } from './cards/card-pages.ts';
export { type A2a, createA2a } from './create-a2a.ts';
export { type PushNotifications, createPush } from './push/create-push.ts';
