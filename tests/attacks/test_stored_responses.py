"""No stored response precedes itself, whatever ids the client chooses and whenever it deletes."""

import threading

from attack_kit import TooSlow, post

PATH = "/v1/responses"
HELLO = {"input": "hello", "max_output_tokens": 2, "temperature": 0}


def test_an_id_equal_to_the_previous_one_is_replaced(fake_server):
    first = post(fake_server, PATH, HELLO | {"request_id": "twin"}).json["id"]
    assert first == "resp_twin"
    body = HELLO | {"request_id": "twin", "previous_response_id": first}
    for store in (True, False):
        second = post(fake_server, PATH, body | {"store": store}).json
        assert second["id"] != first and second["previous_response_id"] == first


def test_deleting_during_preparation_stores_no_cycle(fake_server):
    """Two ids that follow each other, deleted and stored again all the time: every conversation ends."""
    stopping = threading.Event()

    def delete() -> None:
        while not stopping.is_set():
            for name in ("a", "b"):
                fake_server.ask("DELETE", f"{PATH}/resp_{name}")

    deleting = threading.Thread(target=delete, daemon=True)
    deleting.start()
    try:
        for turn in range(200):
            name, other = ("a", "b") if turn % 2 else ("b", "a")
            body = HELLO | {"request_id": name}
            status, _ = post(fake_server, PATH, body | {"previous_response_id": f"resp_{other}"})
            assert status in (200, 404)
            if status == 404:
                assert post(fake_server, PATH, body).status == 200
    except TimeoutError:
        raise TooSlow("a conversation did not end") from None
    finally:
        stopping.set()
        deleting.join(20)
    for name in ("a", "b"):
        status, answer = post(fake_server, PATH, HELLO | {"previous_response_id": f"resp_{name}", "store": False})
        assert status in (200, 404), answer
