export { type BudgetNotices, createBudgetNotices } from './budget-notices.ts';
export {
  WEBHOOKS_PER_TASK_MAX,
  WEBHOOK_BODY_BYTES_MAX,
  WEBHOOK_NAME_CHARS_MAX,
  type Webhook,
  type WebhookContent,
  type WebhookEvent,
  signingKeyOf,
} from './webhook.ts';
export { type Webhooks, createWebhooks } from './webhooks.ts';
