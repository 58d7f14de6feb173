export { createCardOrigin } from './cards/card-pages.ts';
export { createA2a } from './create-a2a.ts';
export { createPush } from './push/create-push.ts';
