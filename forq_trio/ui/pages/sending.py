"""Send a message: to the queue whose page is open, or to one whose name is typed."""

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import CallerError, Forbidden, InvalidQueueName, ProduceToDeadLetterQueue
from forq_trio.model.keys.types import Offered
from forq_trio.model.messages.types import Produced, check_queue_name
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.ui import send_form
from forq_trio.ui.routes import Routes
from forq_trio.ui.send_form import TypedMessage
from forq_trio.ui.site import Site


def sending_routes(site: Site) -> Routes:
    routes = Routes("sending", site)

    async def form(
        fixed: str | None, texts: dict[str, str], errors: dict[str, str], status: int = 200
    ) -> Response:
        title = f"Send a message to {fixed}" if fixed else "Send a message"
        context = {"texts": texts, "errors": errors, "modes": send_form.MODES}
        return await site.dialog("queue/send.html", title, status, fixed=fixed, **context)

    async def send(fixed: str | None, read: TypedMessage) -> Response:
        queue = fixed or read.texts["queue"]
        try:
            check_queue_name(queue)
            site.viewer.require(Scope.PRODUCE, queue)
            if read.message is not None:
                produced = await site.broker.produce_message(queue, read.message)
                return done(fixed, queue, _sent_words(queue, produced), produced.id)
            if read.offering is not None:
                offered = await site.broker.offer_message(queue, read.offering)
                return done(fixed, queue, _offered_words(queue, offered), offered.id)
        except (InvalidQueueName, ProduceToDeadLetterQueue, Forbidden) as error:
            if fixed:
                raise
            read.errors["queue"] = send_form.error_of(error)[1]
        except CallerError as error:
            name, sentence = send_form.error_of(error)
            read.errors[name] = sentence
        return await form(fixed, read.texts, read.errors, 400)

    def done(fixed: str | None, queue: str, said: str, message_id: str) -> Response:
        href = site.url(f"/queue/{queue}/message/{message_id}")
        go = None if fixed else site.url(f"/queue/{queue}")
        return site.done(said, go=go, link="Show it", href=href)

    @routes.get("/queue/<queue>/send", Scope.PRODUCE)
    async def show_fixed(queue: str) -> Response:
        if is_dead_letter_queue(queue):
            raise ProduceToDeadLetterQueue
        return await form(queue, dict.fromkeys(send_form.NAMES, ""), {})

    @routes.post("/queue/<queue>/send", Scope.PRODUCE)
    async def send_fixed(queue: str) -> Response:
        return await send(queue, send_form.read(await request.form))

    @routes.get("/send", None)
    async def show() -> Response:
        texts = dict.fromkeys(send_form.NAMES, "")
        texts["queue"] = request.args.get("queue", "")[:100]
        return await form(None, texts, {})

    @routes.post("/send", None)
    async def send_typed() -> Response:
        return await send(None, send_form.read(await request.form))

    return routes


def _sent_words(queue: str, produced: Produced) -> str:
    """The outcome of a send, in words."""
    number = format.whole(produced.sequence)
    return (
        f"It was sent before, as message {number}"
        if produced.duplicate
        else f"Sent message {number} to {queue}"
    )


def _offered_words(queue: str, offered: Offered) -> str:
    """The outcome of an offer, in words."""
    number = format.whole(offered.sequence)
    if offered.once_more:
        return f"It waits behind message {number}, which is in flight"
    if offered.outcome == "created":
        return f"Sent message {number} to {queue}"
    return f"Message {number} has this key: {'updated' if offered.outcome == 'updated' else 'left as it was'}"
