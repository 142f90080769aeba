"""Send a message: to the queue whose page is open, or to one whose name is typed."""

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model.access import Scope
from forq_trio.model.errors import CallerError, Forbidden, InvalidQueueName, ProduceToDeadLetterQueue
from forq_trio.model.messages import Produced, check_queue_name
from forq_trio.model.queue_names import is_dead_letter_queue
from forq_trio.ui import send_form
from forq_trio.ui.routes import Routes
from forq_trio.ui.send_form import Read
from forq_trio.ui.site import Site


def sending_routes(site: Site) -> Routes:
    routes = Routes("sending", site)

    async def form(
        fixed: str | None, texts: dict[str, str], errors: dict[str, str], status: int = 200
    ) -> Response:
        title = f"Send a message to {fixed}" if fixed else "Send a message"
        return await site.dialog("queue/send.html", title, status, fixed=fixed, texts=texts, errors=errors)

    async def send(fixed: str | None, read: Read) -> Response:
        queue = fixed or read.texts["queue"]
        try:
            check_queue_name(queue)
            site.viewer.require(Scope.PRODUCE, queue)
            if read.message is not None:
                return sent(fixed, queue, await site.broker.produce_message(queue, read.message))
        except (InvalidQueueName, ProduceToDeadLetterQueue, Forbidden) as error:
            if fixed:
                raise
            read.errors["queue"] = send_form.error_of(error)[1]
        except CallerError as error:
            name, sentence = send_form.error_of(error)
            read.errors[name] = sentence
        return await form(fixed, read.texts, read.errors, 400)

    def sent(fixed: str | None, queue: str, produced: Produced) -> Response:
        number = format.whole(produced.sequence)
        said = (
            f"It was sent before, as message {number}"
            if produced.duplicate
            else f"Sent message {number} to {queue}"
        )
        href = site.url(f"/queue/{queue}/message/{produced.id}")
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
