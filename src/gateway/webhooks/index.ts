export { createSealedTexts, type SealedTexts } from './sealed-text.ts';
export { createWebhooks, type Webhooks, type WebhooksOptions } from './webhooks.ts';
export {
  WEBHOOK_BODY_BYTES_MAX,
  WEBHOOK_NAME_CHARS_MAX,
  WEBHOOKS_PER_TASK_MAX,
  type LostDelivery,
  type Webhook,
  type WebhookContent,
  type WebhookEvent,
  type WebhookStore,
} from './webhook.ts';
